"""Names that anyone can check: multihashes, decentralised identifiers, key pairs and dataset references."""
