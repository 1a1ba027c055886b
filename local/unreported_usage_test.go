package main

import (
	"strings"
)

// longText is the text of the responses of silentHost: 325 tokens by the estimate.
var longText = strings.Repeat("thirteen char", 100)

func eventType(data string) string {
	_, rest, _ := strings.Cut(data, `"type":"`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}
