"""Kill ``pegs sample`` on one model again and again: its budget only ever shrinks.

The model is never put back. After each kill the rows that are visible must have been
charged: a table that is new without a charge would be a release for nothing.
"""

from __future__ import annotations

import shutil

from checks.faults.kill import Campaign, Case, End, finish
from checks.faults.places import Place
from checks.faults.works import ROWS, SAMPLE, SAMPLED, BrokenError, Work, spent_rows


class SpendingCampaign(Campaign):
    """`Campaign` on a model that remembers what was drawn from it."""

    def __init__(self, place: Place) -> None:
        finish(place, SAMPLED)
        self._model = place.out / "m.pegs"
        self._charged = 0
        self._start(place, SAMPLE)

    def _start(self, place: Place, work: Work) -> None:
        """Set up what a campaign of any work has."""
        Campaign.__init__(self, place, work)

    def _judge(self, moment: str, end: End) -> Case:
        faults = list(end.faults)
        state = "broken"
        try:
            before, self._charged = self._charged, spent_rows(self._model)
            paid = self._charged - before
            state = self._state()
            if paid not in (0, ROWS):
                faults.append(f"{paid} rows were charged for {ROWS}")
            if state == "new" and paid == 0:
                faults.append("rows were published and not charged")
            if end.status == 0:
                state = "finished"
            faults += self._strangers()
            faults += self._after_stop(end, state)
        except (BrokenError, OSError, ValueError) as error:
            faults.append(f"{type(error).__name__}: {error}")
        self._restore()
        return Case(self.work.name, moment, state, tuple(faults))

    def _strangers(self) -> list[str]:
        model = {"m.pegs", "m.pegs.spent"}
        return [each for each in super()._strangers() if each.rpartition(" ")[2] not in model]

    def _restore(self) -> None:
        """Put the tables back, and leave the model and its record alone."""
        self._put_back()
        self._charged = spent_rows(self._model)

    def _put_back(self) -> None:
        for path in self.place.out.iterdir():
            if path.name in self.work.whole or path.name.startswith(".pegs-"):
                path.unlink()
        for name in self.work.whole:
            if (self._kept / name).exists():
                shutil.copy2(self._kept / name, self.place.out / name)
