"""Progress bars: what was told is shown, on a terminal only."""

from prade.progress import progress_bar


def test_a_bar_for_each_kind_of_work(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with progress_bar(shown=True) as progress:
        for done in range(1, 4):
            progress("estimating", done, 3)
        progress("sampling", 1, 2)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert any("estimating" in line and "100 %" in line for line in lines)
    assert any("sampling" in line and "50 %" in line for line in lines)


def test_nothing_is_written_where_there_is_no_terminal(capsys):
    with progress_bar() as progress:
        progress("estimating", 1, 2)
    out = capsys.readouterr()
    assert (out.out, out.err.strip()) == ("", "")
