package icekeel;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.junit.jupiter.api.Test;

/**
 * Below the folder of the property {@code rck.folder}: every file under {@code loads} loads in the reference
 * implementation and each of its specs can be unpacked by a task; no file under {@code refused} does.
 */
class BindingTests {
  @Test
  void whatIsAcceptedBinds() throws Exception {
    assertThat(unlike("loads", true)).isEmpty();
  }

  @Test
  void whatIsRefusedDoesNotBind() throws Exception {
    assertThat(unlike("refused", false)).isEmpty();
  }

  private static List<String> unlike(String kind, boolean expected) throws Exception {
    List<String> found = new ArrayList<>();
    int read = 0;
    try (Stream<Path> files = Files.walk(Path.of(System.getProperty("rck.folder"), kind))) {
      for (Path file : (Iterable<Path>) files.filter(f -> f.toString().endsWith(".metadata.json"))::iterator) {
        String fault = fault(file);
        read++;
        if ((fault == null) != expected) {
          found.add(file.getFileName() + ": " + fault);
        }
      }
    }
    assertThat(read).isGreaterThan(100);
    return found;
  }

  private static String fault(Path file) throws Exception {
    try {
      TableMetadata table = TableMetadataParser.fromJson(file.toString(), Files.readString(file));
      table.specs().forEach(spec -> PartitionSpecParser.fromJson(table.schema(), PartitionSpecParser.toJson(spec)));
      return null;
    } catch (RuntimeException e) {
      return e.toString();
    }
  }
}
