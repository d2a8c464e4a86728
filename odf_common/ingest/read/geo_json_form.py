"""The form of GeoJSON."""

from __future__ import annotations

FEATURES = "features"
"""The key of the array in a FeatureCollection."""

BEFORE_FEATURES = b'{"type":"FeatureCollection","features":['
"""How the messages begin that a large FeatureCollection is cut into."""

GEOMETRY = "geometry"
"""The column of geometries, and the member of a feature that they come from."""
