// Package settings edits the settings files of other programs: JSON with comments and TOML.
// The functions change the named members only; comments, order and formatting of the rest
// stay. They work on bytes and never touch the disk.
package settings
