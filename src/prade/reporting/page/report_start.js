// The page starts here, when all of its parts are known.

function start() {
  openForPaper();
  startChooser();
  startTables();
  startCopying();
  document.querySelectorAll(".scroll").forEach(framed);
  if (D.map) startMap();
  const drawn = [choose(fromAddress(address.read()), false), drawBudget()];
  if (D.truth) drawn.push(startTruth());
  address.changed((given) => choose(fromAddress(given), false));
  address.sections();
  Promise.all(drawn).then(() => { document.documentElement.dataset.drawn = ""; });
}

start();
