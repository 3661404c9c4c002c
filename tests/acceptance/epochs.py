"""Rows of the group `epochs`: what a service learns, on simulated devices and through the real fusiond."""

import common

LEARNS = "LearnerTest."
SERVES = "LearningTest."
PLANS = "CalibrationTest."
BOOK = "EpochBookTest."


def epochs(rows, work, options):
    common.test_rows(rows, "epochs", "learn_test", LEARNS + "*", "as named: drift in 300 reports, undo in 50, none from noise")
    common.test_rows(rows, "epochs, kept", "learn_test", BOOK + "*", "as named")
    common.test_rows(rows, "plans with fitted constants", "pipeline_test", PLANS + "*", "as named: the key stays, launches follow their cost")
    common.test_rows(rows, "a service learns", "server_test", SERVES + "*", "as named, over RPC")
