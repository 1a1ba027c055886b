// Package hosts holds what hosts of an OpenAI-like API write differently from OpenAI: one
// table for each class of differences, each row with its host, and a comment with its source and date. Supporting
// one more spelling of a host is one more row.
package hosts
