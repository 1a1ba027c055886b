// Package scan implements the checks that need no vendor, by the scanners in its subpackages.
// They use lists, patterns and rules on this machine. The comment of each scanner describes
// what it finds and misses.
package scan
