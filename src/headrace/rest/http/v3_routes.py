"""What the routes of version 3 share: the cluster in the path, the links in answers, work with an admin client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from starlette.requests import Request

from headrace.client.admin.admin import Admin
from headrace.rest import errors
from headrace.rest.admin.admin_pool import AdminPool
from headrace.rest.http.bodies import Bodies
from headrace.rest.links import Links

T = TypeVar("T")
Json = Any


class V3Routes:
    """The base of the classes that have routes of version 3."""

    def __init__(
        self,
        admins: AdminPool,
        bodies: Bodies,
        *,
        cluster_id: str,
        advertised_url: str | None,
        name_authority: str,
    ) -> None:
        self.admins = admins
        self.bodies = bodies
        self.cluster_id = cluster_id
        self._advertised_url = advertised_url
        self._name_authority = name_authority

    def links(self, request: Request) -> Links:
        """The links of an answer."""
        return Links(base_url(request, self._advertised_url), self._name_authority, self.cluster_id)

    def require_cluster(self, request: Request) -> None:
        """Raises RestError where the path names another cluster."""
        wanted = request.path_params["cluster"]
        if wanted != self.cluster_id:
            raise errors.cluster_not_found(wanted)

    async def ask(self, request: Request, work: Callable[[Admin], T]) -> T:
        """Do something with an admin client, for the cluster in the path. Raises RestError."""
        self.require_cluster(request)
        return await self.admins.run(work)


def base_url(request: Request, advertised_url: str | None) -> str:
    """Where a client reaches the proxy: as it is set, else as this client did."""
    return advertised_url or str(request.base_url).rstrip("/")
