package icekeel;

import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The kit once more with what it holds back for its own reference server: nested namespaces, slashes in names and
 * locations that are unique. No property switches these on.
 */
public class UnlockedCatalogTests extends RESTCompatibilityKitCatalogTests {
  /** The kit clears its own namespaces before each test, but not those of the nested ones. */
  @BeforeEach
  void clearNestedNamespaces() {
    Namespace parent = Namespace.of("parent");
    if (catalog().namespaceExists(parent)) {
      catalog().listNamespaces(parent).forEach(catalog()::dropNamespace);
      catalog().dropNamespace(parent);
    }
  }

  @Override
  protected boolean supportsNestedNamespaces() {
    return true;
  }

  @Override
  protected boolean supportsNamesWithSlashes() {
    return true;
  }

  @Override
  @Test
  public void createTableInUniqueLocation() {
    super.createTableInUniqueLocation();
  }
}
