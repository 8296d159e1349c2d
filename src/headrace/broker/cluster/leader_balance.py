"""Gives leadership back to preferred replicas, now and then (auto.leader.rebalance.enable). A rim module.

Every broker runs it; only the one that holds the controllership finds anything to do.
"""

import asyncio
import logging

from headrace.controller.driver import ControllerDriver, NotController
from headrace.coordination.store import StoreFailed
from headrace.settings.live_settings import LiveSettings

_logger = logging.getLogger(__name__)


class LeaderBalance:
    """Elects preferred leaders at the interval that the settings give."""

    def __init__(self, driver: ControllerDriver, live_settings: LiveSettings) -> None:
        self._driver = driver
        self._live_settings = live_settings

    async def run(self) -> None:
        """Elect preferred leaders every `leader.imbalance.check.interval.seconds`, until cancelled."""
        while True:
            settings = self._live_settings.current
            await asyncio.sleep(settings.leader_imbalance_check_interval_seconds)
            if settings.auto_leader_rebalance_enable:
                try:
                    await self._driver.balance_leaders()
                except (NotController, StoreFailed) as error:
                    _logger.info("leaders stay where they are for now: %s", error)
