"""Run the rows of a published table on given data, and compare the figures with the printed values."""

from labelspace.experiment.reproduce.reproduction import NOT_HERE, PlannedRow, Reproduction, plan

__all__ = ["NOT_HERE", "PlannedRow", "Reproduction", "plan"]
