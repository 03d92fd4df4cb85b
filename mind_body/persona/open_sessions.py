"""Door: the model sessions that are open in this process, one per conversation, so many at most; the longest idle goes first."""

from collections import OrderedDict

from mind_body.model.session import ModelSession, Provider, SessionPlan


class OpenSessions:
    """What is closed here lives on at its cursor, or in the record."""

    def __init__(self, provider: Provider, most: int) -> None:
        self._provider = provider
        self._most = most
        self._open: OrderedDict[str, tuple[str, ModelSession]] = OrderedDict()

    def is_alive(self, session_id: str) -> bool:
        return any(one == session_id for one, _ in self._open.values())

    async def take(self, conversation: str, plan: SessionPlan) -> ModelSession:
        """The session of this plan, opened where it is not. May raise MindBodyError."""
        found = self._open.get(conversation)
        if found is not None and found[0] == plan.session_id:
            self._open.move_to_end(conversation)
            return found[1]
        if found is not None:
            await self._close(conversation)
        while len(self._open) >= self._most:
            await self._close(next(iter(self._open)))
        session = await self._provider.open(plan)
        self._open[conversation] = (plan.session_id, session)
        return session

    async def drop(self, session_id: str) -> None:
        """It is not what the record says, or may not be."""
        for conversation, (one, _) in list(self._open.items()):
            if one == session_id:
                await self._close(conversation)

    async def aclose(self) -> None:
        for conversation in list(self._open):
            await self._close(conversation)

    async def _close(self, conversation: str) -> None:
        _, session = self._open.pop(conversation)
        await session.aclose()
