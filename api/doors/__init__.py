"""Front doors: one module per public API shape, each a router."""
