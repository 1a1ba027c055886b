package main

import "time"

// shedEvery is how often pages of the program that were mapped are given back.
// Those in use return with a few hundred short faults: less than a thousandth of
// this time.
const shedEvery = time.Second
