"""Progress tells rows, rows per second and a total that is never too small."""

from pegsynth.cli import console


class Bar:
    """Remembers what a progress bar was told."""

    def __init__(self):
        self.tasks = []

    def add_task(self, name, **fields):
        self.tasks.append({"name": name, **fields})
        return len(self.tasks) - 1

    def update(self, task, **fields):
        self.tasks[task] |= fields


def test_two_passes_and_a_guess_that_was_too_small(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    bar = Bar()
    follow = console._Follower(bar)
    follow("pair counts", 0, 1000)
    now[0] = 2.0
    follow("pair counts", 500, 1000)
    follow("pair counts", 1200, 1000)
    follow("blocks", 0, None)
    assert [task["name"] for task in bar.tasks] == ["pair counts", "blocks"]
    assert bar.tasks[0] == {
        "name": "pair counts",
        "total": 1200,
        "completed": 1200,
        "speed": "600 rows/s",
    }
    assert bar.tasks[1]["total"] is None


def test_rows_of_an_earlier_attempt_do_not_count_for_the_speed(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    bar = Bar()
    follow = console._Follower(bar)
    follow("blocks", 900, 1000)
    assert bar.tasks[0]["speed"] == ""
    now[0] = 1.0
    follow("blocks", 1000, 1000)
    assert bar.tasks[0]["speed"] == "100 rows/s"
    assert bar.tasks[0]["completed"] == 1000
