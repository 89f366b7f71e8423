// The page starts here, when all of its parts are known.

function start() {
  openForPaper();
  startChooser();
  startTables();
  startCopying();
  document.querySelectorAll(".scroll").forEach(framed);
  if (D.map) startMap();
  choose(fromAddress(address.read()), false);
  busy(drawBudget(), D.truth && startTruth());
  address.changed((given) => choose(fromAddress(given), false));
  address.sections();
}

start();
