"""Addresses and resource names in answers of version 3: `metadata.self`, `related`, `resource_name`. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

Json = Any


class Links:
    """Links of one answer: `base` is where the client reaches the proxy, `authority` the first part of resource names."""

    __slots__ = ("_base", "_cluster_id", "_crn")

    def __init__(self, base: str, authority: str, cluster_id: str) -> None:
        self._base = base
        self._cluster_id = cluster_id
        self._crn = f"crn://{authority.strip('/')}/kafka={cluster_id}"

    def url(self, *segments: str | int) -> str:
        """The address of something in the cluster."""
        path = "".join(f"/{quote(str(each), safe='-._~:')}" for each in segments)
        return f"{self._base}/v3/clusters/{quote(self._cluster_id, safe='-._~:')}{path}"

    def related(self, *segments: str | int) -> Json:
        """A relationship to something in the cluster."""
        return {"related": self.url(*segments)}

    def resource_name(self, *names: tuple[str, str | int | None]) -> str:
        """The name of something: pairs of type and id; a type without id stands alone."""
        return self._crn + "".join(
            f"/{kind}" if name is None else f"/{kind}={str(name).strip('/')}"
            for kind, name in names
        )

    def resource(
        self,
        kind: str,
        segments: tuple[str | int, ...],
        names: tuple[tuple[str, str | int | None], ...],
        **attributes: Json,
    ) -> Json:
        """A resource with its metadata in front."""
        metadata = {"self": self.url(*segments), "resource_name": self.resource_name(*names)}
        return {
            "kind": kind,
            "metadata": metadata,
            "cluster_id": self._cluster_id,
            **attributes,
        }

    def collection(self, kind: str, segments: tuple[str | int, ...], data: list[Json]) -> Json:
        """A list of resources. Like Confluent's, it is never split into pages."""
        return {
            "kind": kind,
            "metadata": {"self": self.url(*segments), "next": None},
            "data": data,
        }
