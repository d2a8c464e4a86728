"""Manifests as people write them: YAML and JSON with the position of every value, and back."""
