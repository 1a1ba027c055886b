package main

import "time"

// shedEvery is how often pages of the program that were mapped are given back.
// Those in use return with a few hundred short faults: less than a thousandth of
// this time.
const shedEvery = time.Second

// shedSinglesEvery is the same where pages come one by one: those in use return
// with more faults, and those not in use gather slowly.
const shedSinglesEvery = 10 * time.Second
