"""A forked child answers: with rows, or with one error that names the remedy. It never hangs.

Every case runs in a process of its own with a time limit, far above what any of them takes.
"""

import os
import subprocess
import sys
import textwrap

import pytest

LIMIT = 120
pytestmark = [
    pytest.mark.slow(seconds=5),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
]

COMMON = """
import io, multiprocessing, os, select, signal, sys
from contextlib import redirect_stderr


def tables():
    import polars as pl
    from pegsynth import Feature, Schema
    schema = Schema(
        tuple(Feature(name, categories=("x", "y")) for name in "ab"), reviewed=True
    )
    return pl.DataFrame({"a": ["x", "y"] * 20, "b": ["x", "x", "y", "y"] * 10}), schema


def synthesize(method="pegs", **budget):
    import pegsynth
    data, schema = tables()
    budget = budget or {"epsilon": 50.0}
    return pegsynth.synthesize(data, schema, rows=20, method=method, **budget).frames[0].height


def fit():
    import pegsynth
    data, schema = tables()
    return pegsynth.PeGS(rows=20, epsilon=50.0).fit(data, schema).sample(20).height


def draft():
    from pegsynth import Schema
    return len(Schema.draft(tables()[0]).features)


def evaluate():
    import pegsynth
    data, schema = tables()
    return len(pegsynth.evaluate(data, data, schema).summary)


def discharge():
    from pegsynth.datasets import discharge
    return discharge(20, seed=1).height


def command():
    from pegsynth.cli.main import main
    sys.argv = ["pegs", "schema", "no-such-file.csv", "-o", "schema.toml"]
    heard = io.StringIO()
    with redirect_stderr(heard):
        try:
            main()
        except SystemExit as end:
            return f"status {end.code}: {heard.getvalue().strip()}"


def query():
    import polars as pl
    return pl.DataFrame({"a": [1, 2]}).group_by("a").agg(pl.len()).height


def told(work):
    try:
        return f"done {work()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def forked(work, seconds=60):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, told(work).encode())
        os._exit(0)
    answered = select.select([read], [], [], seconds)[0]
    if not answered:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return os.read(read, 1 << 16).decode() if answered else "no answer"
"""


def run(program):
    """Run a program in a process of its own; return the lines it prints."""
    code = COMMON + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def is_refusal(line):
    return "forked" in line and '"spawn" or "forkserver"' in line


WORKS = ("synthesize", "fit", "draft", "evaluate", "discharge")


def test_a_child_of_a_parent_that_worked_is_told_what_to_do():
    lines = run(f"""
        synthesize()
        for work in ({", ".join(WORKS)}):
            print(forked(work))
        print(forked(lambda: synthesize("pegs-once")))
        print(forked(command))
    """)
    assert len(lines) == len(WORKS) + 2
    *raised, said = lines
    for line in raised:
        assert line.startswith("EngineError: ")
        assert is_refusal(line)
    # The text of a command that is refused is one line and status 2.
    assert said.startswith("done status 2: pegs: this process was forked")


def test_the_twin_without_the_check_never_answers():
    """So the cases above would hang if nobody checked."""
    lines = run("""
        synthesize()
        from pegsynth.api import functions as module
        module.check_threads = lambda: None
        print(forked(synthesize, seconds=10))
    """)
    assert lines == ["no answer"]


def test_worker_processes_that_are_forked_are_told_so():
    lines = run("""
        synthesize()
        with multiprocessing.get_context("fork").Pool(1) as pool:
            try:
                pool.apply_async(synthesize).get(60)
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
    """)
    assert len(lines) == 1
    assert lines[0].startswith("EngineError: ")
    assert is_refusal(lines[0])


def test_a_child_that_was_forked_before_works_like_any_process():
    """The parent has loaded everything, and used nothing."""
    lines = run(f"""
        import polars
        import pegsynth.pipeline.running
        import pegsynth.evaluation.evaluate
        for work in ({", ".join(WORKS)}):
            print(forked(work))
        print(forked(lambda: synthesize("pegs-once")))
        print(forked(lambda: forked(synthesize)))
        print(told(synthesize))
    """)
    assert lines[0] == lines[1] == lines[-1] == "done 20"
    assert all(line.startswith("done ") for line in lines)
    assert lines[-2] == "done done 20"


def test_a_child_that_worked_is_a_parent_like_any_other():
    lines = run("""
        import polars, pegsynth
        print(forked(lambda: (synthesize(), forked(synthesize))))
    """)
    assert lines[0].startswith("done (20, 'EngineError: this process was forked")


def test_a_call_that_was_refused_starts_no_threads():
    """A parent whose parameters were wrong has used nothing."""
    lines = run("""
        print(told(lambda: synthesize(epsilon=-1.0)))
        print(forked(synthesize))
    """)
    assert lines[0].startswith("BudgetError")
    assert lines[1] == "done 20"


def test_a_parent_that_used_polars_alone_counts_too():
    lines = run("""
        import pegsynth
        query()
        print(forked(synthesize))
        print(forked(lambda: forked(synthesize)))
    """)
    assert len(lines) == 2
    assert all(map(is_refusal, lines))


@pytest.mark.parametrize("hidden", [False, True])
def test_where_nothing_can_be_seen_polars_is_asked(hidden):
    """The library was loaded after the fork, or threads have other names."""
    before = "import pegsynth" if hidden else ""
    lines = run(f"""
        {before}
        query()

        def late():
            from pegsynth import runtime as forks
            forks.ANSWER_SECONDS = 3
            return synthesize()

        if {hidden}:
            from pegsynth import runtime as forks
            forks._polars_is_running = lambda: False
        print(forked(late))
        print(told(synthesize))
    """)
    assert is_refusal(lines[0])
    assert lines[1] == "done 20"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_the_remedy_works(method, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        COMMON
        + textwrap.dedent(f"""
        if __name__ == "__main__":
            synthesize()
            with multiprocessing.get_context("{method}").Pool(1) as pool:
                print(pool.apply_async(synthesize).get(100))
        """)
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (done.returncode, done.stdout) == (0, "20\n"), done.stderr


def test_a_process_that_never_forked_is_asked_nothing():
    lines = run("""
        import pegsynth
        from pegsynth import runtime as forks
        forks._polars_answers = lambda: 1 / 0
        print(told(synthesize))
    """)
    assert lines == ["done 20"]
