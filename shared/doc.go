// Package shared is the parent of the packages below functions, local and infra. layers.txt
// lists them in order, and the tests in this folder enforce that order. It contains no code.
package shared
