// Package live defines what is read of sessions that are passed through as they are,
// message by message: as much as decides on money and on what is judged. Sessions are
// metered by what the provider reports. Each wire is a package below.
package live
