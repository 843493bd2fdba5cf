package icekeel;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.view.ViewMetadataParser;
import org.junit.jupiter.api.Test;

/** Every metadata file below the folder of the property {@code rck.folder} loads in the reference implementation. */
class ReadableTests {
  @Test
  void everyMetadataFileLoads() throws Exception {
    List<String> faults = new ArrayList<>();
    int read = 0;
    try (Stream<Path> files = Files.walk(Path.of(System.getProperty("rck.folder")))) {
      for (Path file : (Iterable<Path>) files.filter(f -> f.toString().endsWith(".metadata.json"))::iterator) {
        String text = Files.readString(file);
        try {
          if (text.contains("\"view-uuid\"")) {
            ViewMetadataParser.fromJson(file.toString(), text);
          } else {
            TableMetadataParser.fromJson(file.toString(), text);
          }
          read++;
        } catch (RuntimeException e) {
          faults.add(file + ": " + e);
        }
      }
    }
    assertThat(faults).isEmpty();
    System.out.println("icekeel read " + read);
    assertThat(read).isGreaterThan(500);
  }
}
