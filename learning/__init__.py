"""The paper's algorithm on protocol estimators: FIT, SHARE and GET on ADD, GET_TOP and CROP, without I/O."""
