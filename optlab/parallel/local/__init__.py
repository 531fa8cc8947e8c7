"""Simulated ranks: threads of this process, with the calls of mpi4py's communicator."""
