"""Under `mpirun -n 3 python -m mpi4py.futures`: the bits of a release, estimated on the other processes."""

import hashlib
import sys

from mpi4py.futures import MPIPoolExecutor

from prade import Release
from prade.core.execution import Execution
from prade.estimating.levels.estimates import estimates_of
from worlds.many_places import bits, public

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        workers = Execution(1, executor)
        estimates = estimates_of(Release.load(sys.argv[1]), public(), execution=workers)
        print(workers.number, hashlib.sha256(b"".join(bits(estimates))).hexdigest())
