from collections.abc import Callable
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)

class IAsyncResult(Generic[T_co]):
    def get(self, block: bool = ..., timeout: float | None = ...) -> T_co: ...
    def rawlink(self, callback: Callable[[IAsyncResult[object]], None]) -> None: ...
