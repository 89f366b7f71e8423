"""Ctrl-C at any step: it ends the process soon, costs no budget that bought nothing, and the command can be run again.

What a run has reserved before it is interrupted stays reserved, and the next run goes on with it.

What needs a process that dies is run in one of its own, and the signals are sent at events that Python announces to
audit hooks: at the same place in every run, however busy the machine is.
"""

import re
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner

from prade import Budget, Ledger, Unit
from prade.cli import main as cli
from prade.core.errors import DataError
from prade.core.execution import cores, finishing, shutting_down
from prade.core.interrupts import held_back, second_ends
from prade.data.read.tables import write_table
from prade.examples import census_like
from worlds.commands import call
from worlds.counting import duckdb_file
from worlds.plans import TOWN_PLAN, ledger_for
from worlds.processes import started

cli.every_command()

PATIENCE = 20  # seconds that an interrupted process may take to end, on a busy machine; more where it starts, too
SECRET = "Atlantis"


AT_EVERY_STEP = """
def interrupted(world, number, sent):
    seen = 0
    def listen(event, values):
        nonlocal seen
        if event == "prade.step":
            seen += 1
            if seen == number:
                os.kill(os.getpid(), sent)
    sys.addaudithook(listen)
    try:
        world.measure_and_tell()
    except KeyboardInterrupt:
        os._exit(130)

def at_every_step(sent, stride):
    steps, counted = 0, {"free": 0, "reserved": 0, "kept": 0}
    while True:
        world = World(f"{sent.name}-{steps}")
        code = ended(forked(lambda: interrupted(world, steps + 1, sent)))
        if code == 0:
            return counted.values()
        assert code == (130 if sent == signal.SIGINT else -sent), code
        found = world.ledger.entries("people")
        assert any(entry.drawn for entry in found) == world.place.exists(), "spent for nothing"
        for entry in found:
            told = [(each.stage, each.kind) for each in entry.failures]
            stopped = [] if entry.drawn or sent == signal.SIGTERM else [("count", "KeyboardInterrupt")]
            assert told == stopped, told
            assert entry.state == ("committed" if entry.drawn else "failed" if stopped else "reserved"), entry
        counted[world.recover()] += 1
        world.entries(1)
        assert world.ledger.entries("people")[-1].state == "committed"
        steps += stride

print(*at_every_step(signal.SIGINT, 1), *at_every_step(signal.SIGTERM, 3))
"""


def test_a_signal_at_any_step_wastes_no_budget(drive):
    """Free: checked, prepared. Reserved: four steps of the ledger and one of the run; counted. Released: the rest.

    SIGTERM, which is held back in the same way, is sent at every third step.
    """
    assert drive(AT_EVERY_STEP) == [2, 6, 14, 1, 2, 5]


@pytest.mark.parametrize("failure", [None, DataError("entry 1 is spent")], ids=["signal", "error"])
def test_handlers_are_as_they_were_and_an_error_is_heard_rather_than_the_signal(failure):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    def work():
        signal.raise_signal(signal.SIGINT)
        if failure is not None:
            raise failure

    with pytest.raises(DataError if failure else KeyboardInterrupt), held_back():
        work()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with held_back():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_holds_nothing_back():
    seen = []

    def work():
        with held_back(), second_ends():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_work_that_has_not_begun_is_given_up_with_the_first_error():
    begun = []
    go_on = threading.Event()

    def work(number):
        begun.append(number)
        go_on.wait(PATIENCE)

    def interrupted():
        with shutting_down(ThreadPoolExecutor(1)) as pool:
            for number in range(9):
                pool.submit(work, number)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not go_on.is_set()  # it was not waited for
    go_on.set()
    assert begun in ([], [0])


@pytest.mark.parametrize("failure", [KeyboardInterrupt, DataError])
def test_what_has_begun_is_finished_before_an_interrupt_or_the_first_error(failure):
    begun, ended = list[int](), list[int]()

    def work(number):
        begun.append(number)
        if number in (1, 2) and failure is DataError:
            raise DataError(f"column {number}")
        if number == 1:
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.05)
        ended.append(number)

    with pytest.raises(failure, match="column 1" if failure is DataError else None):
        finishing(work, range(40), threads=2)
    assert sorted(ended) == sorted(set(begun) - ({1, 2} if failure is DataError else set()))
    assert 2 <= len(begun) < 40  # nothing else was begun


def end(process, patience=PATIENCE):
    """How a process ends, which it must do soon."""
    try:
        said, complained = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail("it does not end")
    return process.returncode, said, complained


def interrupted(process):
    """The one line that an interrupted command says, soon."""
    code, said, complained = end(process, 3 * PATIENCE)
    complained = re.sub("^Public files: .*\n", "", complained)  # said before
    assert (code, said, complained.count("\n")) == (130, "", 1)
    assert complained.startswith("prade: interrupted; ")
    return complained


HANGING = """
import threading, time
from prade.cli import main as cli
from prade.core.execution import several

def wait(number):
    print("ready", flush=True)
    threading.Event().wait()

cli.every_command()  # of which two do something else

@cli.program.command("estimate")
def threads():
    list(several(wait, [0], 2))

@cli.program.command("sample")
def unwinding():
    try:
        print("ready", flush=True)
        time.sleep(600)
    finally:
        print("ready", flush=True)
        threading.Event().wait()

cli.main()
"""


@pytest.mark.parametrize(("command", "signals"), [("estimate", 1), ("sample", 2)])
def test_what_would_wait_for_ever_ends(command, signals):
    """Threads that never end need one Ctrl-C, a clean-up that never ends needs another one."""
    process = started(HANGING, command)
    for _ in range(signals):
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
    code, _, complained = end(process)
    assert code == 130
    assert "Traceback" not in complained


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    data = census_like(persons=1_500, places_per_state=3, years=(2023, 2024), seed=3)
    write_table(data.public, folder / "public.parquet")
    write_table(data.private, folder / "private.parquet")
    write_table(data.groups.group_by(["STATE", "PLACE"]).aggregate([]), folder / "places.csv")
    data.schema.save(folder / "schema.toml")
    given = ["--schema", "schema.toml", "--public", "public.parquet", "--groups", "places.csv"]
    given = [folder / each if "." in each else each for each in given]
    plan, ledger = folder / "plan.toml", folder / "ledger"
    call("plan", *given, "--levels", "STATE,PLACE", "--epsilon", 2, "--no-tune", "-o", plan)
    call("ledger", "open", "private", "--cap", 2, "--ledger", ledger)
    call("measure", plan, folder / "private.parquet", "-o", folder / "release", "--ledger", ledger)
    return folder / "release"


SENT_AT = """
import os, signal, sys, threading

moment = sys.argv.pop(1)
come = []

def now():
    if not come:
        come.append(moment)
        os.kill(os.getpid(), signal.SIGINT)

def listen(event, values):
    if event == "import" and values[0] == moment:
        now()

def started(thread):
    start(thread)
    if thread.name.startswith(moment):
        now()

start, threading.Thread.start = threading.Thread.start, started
sys.addaudithook(listen)
from prade.__main__ import main
try:
    main()
finally:
    if not come:
        sys.exit("that moment never came")
"""


@pytest.mark.parametrize("module", ["click", "numba"])
def test_an_interrupt_while_loading_is_one_line(release, module):
    interrupted(started(SENT_AT, module, "estimate", str(release)))


@pytest.mark.parametrize("threads", ["prade-columns", "prade-groups"])
def test_an_interrupt_amid_the_work_ends_soon_and_can_be_gone_on_from(release, threads):
    """When the first thread has started. Arrow must not be at work when the process ends: it could crash."""
    if cores() == 1 and threads == "prade-columns":
        pytest.skip("on one core, columns are coded without threads")
    place = str(shutil.copytree(release, release.with_name(threads)))  # without estimates that are kept
    interrupted(started(SENT_AT, threads, "estimate", place))
    assert "converged" in call("estimate", place).output


AMID_COUNTING = """
import os, signal
from prade.measuring.tally import Tally

sent = []

def interrupt(self, cells):
    if not sent:  # a second one would end the process at once
        sent.append(os.kill(os.getpid(), signal.SIGINT))
    return coded(self, cells)

coded, Tally.coded = Tally.coded, interrupt
from prade.__main__ import main
main()
"""


def test_an_interrupt_while_rows_are_counted_is_one_line_that_says_what_is_reserved(release):
    """The second run goes on with the same entry; the cap affords one."""
    folder = release.parent / "counted"
    folder.mkdir()
    ledger = Ledger(release.parent / "counted.ledger")
    ledger.open_dataset("private", Unit(1), Budget.pure(2))
    given = ["measure", release.parent / "plan.toml", release.parent / "private.parquet", "-o", folder / "release"]
    given = [*map(str, given), "--ledger", str(ledger.path)]
    complained = interrupted(started(AMID_COUNTING, *given))
    assert complained.startswith("prade: interrupted; no file is half-written, run the command again to continue. ")
    assert complained.endswith(
        f"In this run epsilon = 2 (pure differential privacy) was reserved in {ledger.path} as entry 1, and nothing "
        "was released: measure the same plan into the same folder, which goes on without paying again, or give it back "
        "with `prade ledger return`\n"
    )
    (entry,) = ledger.entries("private")
    assert (entry.state, entry.drawn) == ("failed", False)
    assert [(each.stage, each.kind) for each in entry.failures] == [("count", "KeyboardInterrupt")]
    assert ledger.remaining("private") == Budget.pure(0)
    assert list(folder.iterdir()) == []
    call(*given)
    (entry,) = ledger.entries("private")
    assert (entry.state, len(entry.failures), len(entry.resumed)) == ("committed", 1, 1)


ENDLESS = """
import os, signal, threading, time

def interrupt():
    ready.wait()
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)

from prade.measuring.tally import Tally

def run(self, batches):
    ready.set()
    return counted(self, batches)

ready = threading.Event()
counted, Tally.run = Tally.run, run
threading.Thread(target=interrupt, daemon=True).start()
from prade.__main__ import main
main()
"""


def test_an_interrupt_ends_an_engine_that_has_no_row_to_deliver(tmp_path):
    """DuckDB looks for rows without end, and does not listen itself."""
    view = "CREATE VIEW people AS SELECT 3 AS AGE, 'a' AS TOWN FROM range(1000000000000) WHERE range < 0"
    private = duckdb_file(tmp_path / "rows.duckdb", view)
    ledger = ledger_for(TOWN_PLAN, tmp_path / "people.ledger")
    TOWN_PLAN.save(tmp_path / "plan.toml")
    given = ["measure", tmp_path / "plan.toml", private, "-o", tmp_path / "release"]
    assert "was reserved in" in interrupted(started(ENDLESS, *map(str, given), "--ledger", str(ledger.path)))
    (entry,) = ledger.entries("people")
    assert (entry.state, entry.drawn) == ("failed", False)
    assert [(each.stage, each.kind) for each in entry.failures] == [("count", "KeyboardInterrupt")]


def unforeseen(command, *, interrupted=False):
    """What a command called so says when something fails that nobody thought of."""
    group = cli.Stages("prade")

    @group.command(command)
    def fail():
        try:
            if interrupted:
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            pass  # as a database does, which makes another error of it
        raise RuntimeError(SECRET)

    with second_ends():
        return CliRunner().invoke(group, [command])


@pytest.mark.parametrize("command", ["measure", "synthesize", "score", "report", "demo", "plan"])
@pytest.mark.parametrize("debug", [False, True])
def test_an_unforeseen_error_is_one_line_and_quotes_nothing_private(monkeypatch, command, debug):
    monkeypatch.setenv(cli.DEBUG, "1") if debug else monkeypatch.delenv(cli.DEBUG, raising=False)
    done = unforeseen(command)
    assert done.exit_code == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("prade: RuntimeError")
    assert (SECRET in done.output) == (command == "plan")  # which reads public tables only
    assert (f'File "{__file__}"' in done.stderr) == debug
    assert debug or done.stderr.count("\n") == 1


def test_every_command_is_known_to_read_private_rows_or_not():
    private = {"measure", "synthesize", "score", "report", "demo", "check"}
    assert set(cli.program.commands) == private | set(cli.PUBLIC_ONLY)


def test_an_error_that_a_library_makes_of_an_interrupt_is_an_interruption():
    done = unforeseen("measure", interrupted=True)
    assert done.exit_code == 130
    assert "run the command again" in done.stderr
    assert done.stderr.endswith(". In this run nothing was spent\n")


def test_nobody_is_left_listening():
    """After the command line has been called from Python, Ctrl-C is what it was."""
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code in (None, 0)
    assert signal.getsignal(signal.SIGINT) is before
