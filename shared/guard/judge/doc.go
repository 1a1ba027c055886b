// Package judge defines the interface of checks: their input, their verdict, and the makers
// that each package registers. Package chain calls them; only chain depends on hooks, denials
// and feedback.
package judge
