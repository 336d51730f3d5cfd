"""What callers in Python use: functions, fitted models, completed tables, the estimator."""
