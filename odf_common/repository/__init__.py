"""Many datasets below one root, kept in line with the catalog that knows them."""
