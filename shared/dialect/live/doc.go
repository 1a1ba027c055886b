// Package live says what is read of sessions that are passed through as they are, message
// by message, and metered by what the provider tells of them: as much as decides on money
// and on what is judged. Each wire is a package below.
package live
