// Package realtime reads the events of realtime sessions in OpenAI's shape, of its general
// and its beta version: as much as decides on money and on what is judged. Everything else
// passes unchanged.
package realtime
