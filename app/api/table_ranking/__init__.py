"""Tables by how their schemas have grown."""
