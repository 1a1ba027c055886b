package main

import "gateway/shared/queue"

// without returns the messages that are not among failed.
func without(messages, failed []queue.Message) []queue.Message {
	bad := make(map[string]bool, len(failed))
	for _, m := range failed {
		bad[m.ID] = true
	}
	out := messages[:0:0]
	for _, m := range messages {
		if !bad[m.ID] {
			out = append(out, m)
		}
	}
	return out
}
