"""FlatBuffers bytes of metadata: written as the reference does, read without trusting them."""
