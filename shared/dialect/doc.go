// Package dialect contains the wire formats. Each folder is one dialect and implements the
// roles of chat that it has. Dialects do not depend on each other: conversion between them goes
// through chat. The golden cases of a pair are in the testdata of its provider's dialect;
// package golden runs them. The README explains how to add a dialect, and which tests then
// check it.
package dialect
