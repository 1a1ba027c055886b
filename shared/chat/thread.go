package chat

import (
	"bytes"

	"gateway/shared/fault"
)

// threadMember is the field of a Messages request with which the provider stores the
// conversation, so that the client sends only new messages.
const threadMember = "thread"

// RefuseThread returns the error by which Anthropic's clients recognize that a thread is not
// stored, so that they send the complete conversation: thread_not_found if the request
// continues one, thread_unsupported_request otherwise. It returns nil if the request has no
// thread, or if the target supports threads. Without the error, a conversation would lose all
// of its earlier turns.
func (r *Request) RefuseThread(unsupported bool) error {
	if !unsupported || r.Dialect != "anthropic.messages" {
		return nil
	}
	thread := Fields(r.Extra).Find(threadMember)
	switch {
	case thread == nil:
		return nil
	case bytes.Contains(thread, []byte(`"previous_message_id"`)), bytes.Contains(thread, []byte(`"continue"`)):
		return fault.New(fault.ThreadNotFound, threadMember, "thread is not kept by the provider of this target; send the whole conversation in messages")
	}
	return fault.New(fault.ThreadUnsupported, threadMember, "thread is not supported by the provider of this target; send the whole conversation in messages")
}

// NamesThread reports whether a body in a client's format may have a thread, without parsing
// it.
func NamesThread(client Dialect, body []byte) bool {
	return client.Name() == "anthropic.messages" && bytes.Contains(body, []byte(`"`+threadMember+`"`))
}
