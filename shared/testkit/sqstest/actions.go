package sqstest

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const maxBytes = 1 << 20 // of a message, and of all messages of a batch

type sendRequest struct {
	QueueUrl string
	sendEntry
}

type sendEntry struct {
	Id             string `json:",omitempty"`
	MessageBody    *string
	DelaySeconds   *int
	MessageGroupId *string
}

type batchError struct {
	Id          string
	Code        string
	Message     string
	SenderFault bool
}

type sendResult struct {
	Id               string `json:",omitempty"`
	MessageId        string
	MD5OfMessageBody string
}

type batchResponse[T any] struct {
	Successful []T          `json:",omitempty"`
	Failed     []batchError `json:",omitempty"`
}

var groupID = regexp.MustCompile(`^[!-~]{1,128}$`)

// carried reports whether SQS carries every character of a body: #x9 | #xA | #xD
// | #x20-#xD7FF | #xE000-#xFFFD | #x10000-#x10FFFF.
func carried(body string) bool {
	for _, r := range body {
		if r < 0x20 && r != 9 && r != 10 && r != 13 || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}

func (e *sendEntry) check() *failure {
	switch {
	case e.MessageBody == nil || *e.MessageBody == "":
		return fail("MissingParameter", "The request must contain the parameter MessageBody.")
	case !carried(*e.MessageBody):
		return fail("InvalidMessageContents", "Invalid characters found in the message body.")
	case e.DelaySeconds != nil && (*e.DelaySeconds < 0 || *e.DelaySeconds > 900):
		return fail("InvalidParameterValue", "Value %d for parameter DelaySeconds is invalid.", *e.DelaySeconds)
	case e.MessageGroupId != nil && !groupID.MatchString(*e.MessageGroupId):
		return fail("InvalidParameterValue", "Value for parameter MessageGroupId is invalid.")
	}
	return nil
}

func (s *Server) put(q *store, e *sendEntry) sendResult {
	now := s.now()
	m := &message{id: rand.Text(), body: *e.MessageBody, sent: now, visible: now}
	if e.MessageGroupId != nil {
		m.group = *e.MessageGroupId
	}
	if e.DelaySeconds != nil {
		m.visible = now.Add(time.Duration(*e.DelaySeconds) * time.Second)
	}
	q.messages = append(q.messages, m)
	s.wake()
	return sendResult{Id: e.Id, MessageId: m.id, MD5OfMessageBody: sum(m.body)}
}

func sum(body string) string {
	h := md5.Sum([]byte(body))
	return hex.EncodeToString(h[:])
}

func (s *Server) send(in *sendRequest) (any, *failure) {
	q, f := find(s, in.QueueUrl)
	if f == nil {
		f = in.check()
	}
	if f == nil && len(*in.MessageBody) > maxBytes {
		f = fail("InvalidParameterValue", "One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", maxBytes)
	}
	if f != nil {
		return nil, f
	}
	return s.put(q, &in.sendEntry), nil
}

var batchID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// checkBatch checks what all batch requests share.
func checkBatch(ids []string) *failure {
	switch {
	case len(ids) == 0:
		return fail("EmptyBatchRequest", "There should be at least one entry in the request.")
	case len(ids) > 10:
		return fail("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent %d.", len(ids))
	}
	for i, id := range ids {
		if !batchID.MatchString(id) {
			return fail("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		if slices.Contains(ids[:i], id) {
			return fail("BatchEntryIdsNotDistinct", "Id %s repeated.", id)
		}
	}
	return nil
}

// spared applies the injected fault of an entry.
func spared(s *Server, action, id, body string) *batchError {
	if s.faults.Entry == nil {
		return nil
	}
	if e := s.faults.Entry(action, id, body); e != nil {
		return &batchError{Id: id, Code: e.Code, Message: "injected", SenderFault: e.SenderFault}
	}
	return nil
}

func (s *Server) sendBatch(in *struct {
	QueueUrl string
	Entries  []sendEntry
}) (any, *failure) {
	q, f := find(s, in.QueueUrl)
	if f != nil {
		return nil, f
	}
	var ids []string
	total := 0
	for i := range in.Entries {
		ids = append(ids, in.Entries[i].Id)
		if b := in.Entries[i].MessageBody; b != nil {
			total += len(*b)
		}
	}
	if f := checkBatch(ids); f != nil {
		return nil, f
	}
	if total > maxBytes {
		return nil, fail("BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxBytes, total)
	}
	var out batchResponse[sendResult]
	for i := range in.Entries {
		e := &in.Entries[i]
		if f := e.check(); f != nil {
			out.Failed = append(out.Failed, batchError{e.Id, f.code, f.message, true})
		} else if injected := spared(s, "SendMessageBatch", e.Id, *e.MessageBody); injected != nil {
			out.Failed = append(out.Failed, *injected)
		} else {
			out.Successful = append(out.Successful, s.put(q, e))
		}
	}
	return out, nil
}

type receiveRequest struct {
	QueueUrl                    string
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
	ReceiveRequestAttemptId     *string
}

type received struct {
	MessageId     string
	ReceiptHandle string
	MD5OfBody     string
	Body          string
	Attributes    map[string]string `json:",omitempty"`
}

func (in *receiveRequest) check() *failure {
	inside := func(v *int, low, high int) bool { return v == nil || *v >= low && *v <= high }
	switch {
	case !inside(in.MaxNumberOfMessages, 1, 10):
		return fail("InvalidParameterValue", "Value %d for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.", *in.MaxNumberOfMessages)
	case !inside(in.WaitTimeSeconds, 0, 20):
		return fail("InvalidParameterValue", "Value %d for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.", *in.WaitTimeSeconds)
	case !inside(in.VisibilityTimeout, 0, 43200):
		return fail("InvalidParameterValue", "Value %d for parameter VisibilityTimeout is invalid.", *in.VisibilityTimeout)
	case in.ReceiveRequestAttemptId != nil:
		return fail("InvalidParameterValue", "ReceiveRequestAttemptId is for FIFO queues.")
	}
	for _, name := range append(in.MessageSystemAttributeNames, in.AttributeNames...) {
		switch name {
		case "All", "ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "AWSTraceHeader", "SenderId",
			"SentTimestamp", "SqsManagedSseEnabled", "MessageDeduplicationId", "MessageGroupId", "SequenceNumber", "DeadLetterQueueSourceArn":
		default:
			return fail("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	return nil
}

func (s *Server) receive(ctx context.Context, in *receiveRequest) (any, *failure) {
	wait := 0
	if in.WaitTimeSeconds != nil {
		wait = *in.WaitTimeSeconds
	}
	deadline := time.Now().Add(time.Duration(wait) * time.Second)
	for {
		s.mu.Lock()
		got, f := s.take(in)
		changed := s.changed
		s.mu.Unlock()
		if f != nil || len(got) > 0 || !time.Now().Before(deadline) || ctx.Err() != nil {
			return struct {
				Messages []received `json:",omitempty"`
			}{got}, f
		}
		// Polling finds messages that become visible as time passes.
		timer := time.NewTimer(min(20*time.Millisecond, time.Until(deadline)))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (s *Server) take(in *receiveRequest) ([]received, *failure) {
	q, f := find(s, in.QueueUrl)
	if f == nil {
		f = in.check()
	}
	if f != nil {
		return nil, f
	}
	bury(s, q)
	most, hide := 1, q.opt.Visibility
	if in.MaxNumberOfMessages != nil {
		most = *in.MaxNumberOfMessages
	}
	if in.VisibilityTimeout != nil {
		hide = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	now := s.now()
	var got []received
	for _, m := range q.messages {
		if len(got) == most {
			break
		}
		if m.visible.After(now) {
			continue
		}
		m.receives++
		if m.first.IsZero() {
			m.first = now
		}
		m.visible, m.receipt = now.Add(hide), "AQEB"+rand.Text()+rand.Text()
		got = append(got, received{
			MessageId: m.id, ReceiptHandle: m.receipt, MD5OfBody: sum(m.body), Body: m.body,
			Attributes: in.attributes(m),
		})
	}
	return got, nil
}

// attributes returns the requested ones, as SQS does.
func (in *receiveRequest) attributes(m *message) map[string]string {
	names := append(slices.Clone(in.MessageSystemAttributeNames), in.AttributeNames...)
	out := map[string]string{}
	for name, value := range map[string]string{
		"ApproximateReceiveCount":          strconv.Itoa(m.receives),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.first.UnixMilli(), 10),
		"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
		"SenderId":                         "AIDAEXAMPLE",
		"MessageGroupId":                   m.group,
	} {
		if value != "" && (slices.Contains(names, name) || slices.Contains(names, "All")) {
			out[name] = value
		}
	}
	return out
}

type deleteEntry struct {
	Id            string `json:",omitempty"`
	ReceiptHandle string
}

// drop deletes the delivery that a receipt names. An older receipt succeeds without
// deleting, as in standard queues.
func (s *Server) drop(q *store, receipt string) *failure {
	if !strings.HasPrefix(receipt, "AQEB") {
		return fail("ReceiptHandleIsInvalid", "The input receipt handle %q is not a valid receipt handle.", receipt)
	}
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return m.receipt == receipt })
	return nil
}

func (s *Server) delete(in *struct {
	QueueUrl string
	deleteEntry
}) (any, *failure) {
	q, f := find(s, in.QueueUrl)
	if f == nil {
		f = s.drop(q, in.ReceiptHandle)
	}
	return nil, f
}

func (s *Server) deleteBatch(in *struct {
	QueueUrl string
	Entries  []deleteEntry
}) (any, *failure) {
	return batch(s, "DeleteMessageBatch", in.QueueUrl, in.Entries,
		func(e deleteEntry) string { return e.Id },
		func(q *store, e deleteEntry) *failure { return s.drop(q, e.ReceiptHandle) })
}

// batch runs a batch with entries that have no individual result.
func batch[E any](s *Server, action, url string, entries []E, id func(E) string, do func(*store, E) *failure) (any, *failure) {
	q, f := find(s, url)
	if f != nil {
		return nil, f
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, id(e))
	}
	if f := checkBatch(ids); f != nil {
		return nil, f
	}
	var out batchResponse[struct{ Id string }]
	for _, e := range entries {
		if injected := spared(s, action, id(e), ""); injected != nil {
			out.Failed = append(out.Failed, *injected)
		} else if f := do(q, e); f != nil {
			out.Failed = append(out.Failed, batchError{id(e), f.code, f.message, true})
		} else {
			out.Successful = append(out.Successful, struct{ Id string }{id(e)})
		}
	}
	return out, nil
}

type changeEntry struct {
	Id                string `json:",omitempty"`
	ReceiptHandle     string
	VisibilityTimeout *int
}

func (s *Server) changeOne(q *store, e changeEntry) *failure {
	switch {
	case e.VisibilityTimeout == nil:
		return fail("MissingParameter", "The request must contain the parameter VisibilityTimeout.")
	case *e.VisibilityTimeout < 0 || *e.VisibilityTimeout > 43200:
		return fail("InvalidParameterValue", "Value %d for parameter VisibilityTimeout is invalid. Reason: VisibilityTimeout must be an integer between 0 and 43200.", *e.VisibilityTimeout)
	case !strings.HasPrefix(e.ReceiptHandle, "AQEB"):
		return fail("ReceiptHandleIsInvalid", "The input receipt handle %q is not a valid receipt handle.", e.ReceiptHandle)
	}
	now := s.now()
	for _, m := range q.messages {
		if m.receipt == e.ReceiptHandle && m.visible.After(now) {
			m.visible = now.Add(time.Duration(*e.VisibilityTimeout) * time.Second)
			s.wake()
			return nil
		}
	}
	return fail("MessageNotInflight", "The message referred to is not in flight.")
}

func (s *Server) change(in *struct {
	QueueUrl string
	changeEntry
}) (any, *failure) {
	q, f := find(s, in.QueueUrl)
	if f == nil {
		f = s.changeOne(q, in.changeEntry)
	}
	return nil, f
}

func (s *Server) changeBatch(in *struct {
	QueueUrl string
	Entries  []changeEntry
}) (any, *failure) {
	return batch(s, "ChangeMessageVisibilityBatch", in.QueueUrl, in.Entries,
		func(e changeEntry) string { return e.Id }, s.changeOne)
}

func (s *Server) queueURL(in *struct {
	QueueName              string
	QueueOwnerAWSAccountId *string
}) (any, *failure) {
	url := s.http.URL + "/" + account + "/" + in.QueueName
	if _, f := find(s, url); f != nil {
		return nil, f
	}
	return map[string]string{"QueueUrl": url}, nil
}

func (s *Server) attributes(in *struct {
	QueueUrl       string
	AttributeNames []string
}) (any, *failure) {
	q, f := find(s, in.QueueUrl)
	if f != nil {
		return nil, f
	}
	now, ready, hidden, delayed := s.now(), 0, 0, 0
	for _, m := range q.messages {
		switch {
		case !m.visible.After(now):
			ready++
		case m.receipt == "":
			delayed++
		default:
			hidden++
		}
	}
	all := map[string]string{
		"ApproximateNumberOfMessages":           strconv.Itoa(ready),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(hidden),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(delayed),
		"VisibilityTimeout":                     strconv.Itoa(int(q.opt.Visibility / time.Second)),
		"MaximumMessageSize":                    strconv.Itoa(maxBytes),
		"QueueArn":                              "arn:aws:sqs:us-east-1:" + account + ":" + q.name,
	}
	if q.opt.MaxReceives > 0 {
		all["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:%s:%s","maxReceiveCount":%d}`, account, q.opt.DeadLetter, q.opt.MaxReceives)
	}
	out := map[string]string{}
	for name, value := range all {
		if slices.Contains(in.AttributeNames, name) || slices.Contains(in.AttributeNames, "All") {
			out[name] = value
		}
	}
	return map[string]any{"Attributes": out}, nil
}
