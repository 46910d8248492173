"""Running a recorded task again, and the challenges that it settles."""
