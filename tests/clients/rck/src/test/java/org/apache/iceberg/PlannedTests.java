package org.apache.iceberg;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.Test;

/**
 * What the reference implementation makes of the cases in the file of the property {@code rck.plans}: one schema for
 * each, or null where it refuses, written beside it with the ending {@code .out}.
 */
class PlannedTests {
  private static final ObjectMapper JSON = new ObjectMapper();

  @Test
  void everyCaseIsAnswered() throws Exception {
    Path file = Path.of(System.getProperty("rck.plans"));
    ArrayNode answers = JSON.createArrayNode();
    for (JsonNode one : JSON.readTree(file.toFile())) {
      answers.add(answer(one));
    }
    Files.writeString(Path.of(file + ".out"), JSON.writeValueAsString(answers));
    assertThat(answers.size()).isPositive();
  }

  private static JsonNode answer(JsonNode one) throws Exception {
    SchemaUpdate update =
        new SchemaUpdate(SchemaParser.fromJson(one.get("schema")), one.get("last-column-id").asInt());
    try {
      for (JsonNode operation : one.get("operations")) {
        apply(update, operation);
      }
      return JSON.readTree(SchemaParser.toJson(update.apply()));
    } catch (RuntimeException e) {
      return JSON.nullNode();
    }
  }

  private static void apply(UpdateSchema update, JsonNode operation) {
    String path = operation.get("path").asText();
    switch (operation.get("op").asText()) {
      case "add":
        int dot = path.lastIndexOf('.');
        String doc = operation.get("doc").isNull() ? null : operation.get("doc").asText();
        update.addColumn(dot < 0 ? null : path.substring(0, dot), path.substring(dot + 1), type(operation), doc);
        move(update, path, operation);
        break;
      case "drop":
        update.deleteColumn(path);
        break;
      case "rename":
        update.renameColumn(path, operation.get("to").asText());
        break;
      case "move":
        move(update, path, operation);
        break;
      case "promote":
        update.updateColumn(path, type(operation).asPrimitiveType());
        break;
      case "make-optional":
        update.makeColumnOptional(path);
        break;
      case "set-doc":
        update.updateColumnDoc(path, operation.get("doc").asText());
        break;
      default:
        throw new IllegalArgumentException(operation.toString());
    }
  }

  private static void move(UpdateSchema update, String path, JsonNode operation) {
    if (operation.path("first").asBoolean()) {
      update.moveFirst(path);
    } else if (operation.has("before")) {
      update.moveBefore(path, operation.get("before").asText());
    } else if (operation.has("after")) {
      update.moveAfter(path, operation.get("after").asText());
    }
  }

  /** The type of an operation, read as that of the only column of a schema. */
  private static Type type(JsonNode operation) {
    JsonNode field =
        JSON.createObjectNode()
            .put("id", 9999)
            .put("name", "x")
            .put("required", false)
            .set("type", operation.get("type"));
    JsonNode schema = JSON.createObjectNode().put("type", "struct").set("fields", JSON.createArrayNode().add(field));
    Types.NestedField only = SchemaParser.fromJson(schema).columns().get(0);
    return only.type();
  }
}
