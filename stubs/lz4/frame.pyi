class LZ4FrameDecompressor:
    eof: bool
    def decompress(self, data: bytes | memoryview, max_length: int = -1) -> bytes: ...

def compress(
    data: bytes | bytearray | memoryview,
    compression_level: int = 0,
    block_linked: bool = True,
    content_checksum: bool = False,
    store_size: bool = True,
) -> bytes: ...
