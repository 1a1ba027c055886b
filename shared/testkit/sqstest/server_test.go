package sqstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// call makes one request; the edits spoil it.
func call(t *testing.T, s *Server, action, body string, edits ...func(*http.Request)) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.URL()+"/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	r.Header.Set("X-Amz-Date", "20261120T000000Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKID/20261120/eu-west-1/sqs/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature="+strings.Repeat("a", 64))
	for _, edit := range edits {
		edit(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer := map[string]any{}
	if resp.ContentLength != 0 {
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
	}
	return resp.StatusCode, answer
}

func entries(n int, body string) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"Id":"%d","MessageBody":"%s"}`, i, body))
	}
	return strings.Join(list, ",")
}

func TestWhatSQSRefusesIsRefused(t *testing.T) {
	s := Start()
	defer s.Close()
	url := s.Create("q", Options{})
	q := `"QueueUrl":"` + url + `"`
	for name, c := range map[string]struct {
		action, body, code string
		edit               func(*http.Request)
	}{
		"no target":      {"SendMessage", `{}`, "UnknownOperationException", func(r *http.Request) { r.Header.Del("X-Amz-Target") }},
		"unknown action": {"SendMessages", `{}`, "UnknownOperationException", nil},
		"query protocol": {"SendMessage", `{}`, "UnknownOperationException", func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }},
		"path":           {"SendMessage", `{}`, "UnknownOperationException", func(r *http.Request) { r.URL.Path = "/q" }},
		"unsigned":       {"SendMessage", `{}`, "IncompleteSignature", func(r *http.Request) { r.Header.Del("Authorization") }},
		"signed for another": {"SendMessage", `{}`, "IncompleteSignature", func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "/sqs/", "/s3/", 1))
		}},
		"not JSON":            {"SendMessage", `{`, "SerializationException", nil},
		"not UTF-8":           {"SendMessage", "{\"MessageBody\":\"\xff\"}", "SerializationException", nil},
		"unknown field":       {"SendMessage", `{` + q + `,"MessageBody":"x","Body":"x"}`, "SerializationException", nil},
		"no such queue":       {"SendMessage", `{"QueueUrl":"` + url + `x","MessageBody":"x"}`, "QueueDoesNotExist", nil},
		"foreign queue":       {"SendMessage", `{"QueueUrl":"https://sqs.eu-west-1.amazonaws.com/1/q","MessageBody":"x"}`, "InvalidAddress", nil},
		"empty body":          {"SendMessage", `{` + q + `,"MessageBody":""}`, "MissingParameter", nil},
		"control character":   {"SendMessage", `{` + q + `,"MessageBody":"a\u0000b"}`, "InvalidMessageContents", nil},
		"noncharacter":        {"SendMessage", `{` + q + `,"MessageBody":"a\uffff"}`, "InvalidMessageContents", nil},
		"long body":           {"SendMessage", `{` + q + `,"MessageBody":"` + strings.Repeat("x", 1<<20+1) + `"}`, "InvalidParameterValue", nil},
		"long group":          {"SendMessage", `{` + q + `,"MessageBody":"x","MessageGroupId":"` + strings.Repeat("g", 129) + `"}`, "InvalidParameterValue", nil},
		"group with space":    {"SendMessage", `{` + q + `,"MessageBody":"x","MessageGroupId":"a b"}`, "InvalidParameterValue", nil},
		"delay":               {"SendMessage", `{` + q + `,"MessageBody":"x","DelaySeconds":901}`, "InvalidParameterValue", nil},
		"empty batch":         {"SendMessageBatch", `{` + q + `,"Entries":[]}`, "EmptyBatchRequest", nil},
		"eleven entries":      {"SendMessageBatch", `{` + q + `,"Entries":[` + entries(11, "x") + `]}`, "TooManyEntriesInBatchRequest", nil},
		"same id twice":       {"SendMessageBatch", `{` + q + `,"Entries":[` + entries(1, "x") + `,` + entries(1, "y") + `]}`, "BatchEntryIdsNotDistinct", nil},
		"bad id":              {"SendMessageBatch", `{` + q + `,"Entries":[{"Id":"a.b","MessageBody":"x"}]}`, "InvalidBatchEntryId", nil},
		"batch too long":      {"SendMessageBatch", `{` + q + `,"Entries":[` + entries(3, strings.Repeat("x", 400_000)) + `]}`, "BatchRequestTooLong", nil},
		"eleven at once":      {"ReceiveMessage", `{` + q + `,"MaxNumberOfMessages":11}`, "InvalidParameterValue", nil},
		"none at once":        {"ReceiveMessage", `{` + q + `,"MaxNumberOfMessages":0}`, "InvalidParameterValue", nil},
		"long wait":           {"ReceiveMessage", `{` + q + `,"WaitTimeSeconds":21}`, "InvalidParameterValue", nil},
		"long visibility":     {"ReceiveMessage", `{` + q + `,"VisibilityTimeout":43201}`, "InvalidParameterValue", nil},
		"unknown attribute":   {"ReceiveMessage", `{` + q + `,"MessageSystemAttributeNames":["Group"]}`, "InvalidAttributeName", nil},
		"bad receipt":         {"DeleteMessage", `{` + q + `,"ReceiptHandle":"x"}`, "ReceiptHandleIsInvalid", nil},
		"eleven deletes":      {"DeleteMessageBatch", `{` + q + `,"Entries":[` + strings.ReplaceAll(entries(11, "AQEB"), "MessageBody", "ReceiptHandle") + `]}`, "TooManyEntriesInBatchRequest", nil},
		"not in flight":       {"ChangeMessageVisibility", `{` + q + `,"ReceiptHandle":"AQEBx","VisibilityTimeout":1}`, "MessageNotInflight", nil},
		"no visibility":       {"ChangeMessageVisibility", `{` + q + `,"ReceiptHandle":"AQEBx"}`, "MissingParameter", nil},
		"negative visibility": {"ChangeMessageVisibility", `{` + q + `,"ReceiptHandle":"AQEBx","VisibilityTimeout":-1}`, "InvalidParameterValue", nil},
	} {
		edit := c.edit
		if edit == nil {
			edit = func(*http.Request) {}
		}
		status, answer := call(t, s, c.action, c.body, edit)
		if status != 400 || answer["__type"] != "com.amazonaws.sqs#"+c.code {
			t.Errorf("%s: %d %v, want %s", name, status, answer, c.code)
		}
	}
	if n := len(s.Messages("q")); n != 0 {
		t.Errorf("%d messages were kept", n)
	}
}

func TestABatchMayFailInPart(t *testing.T) {
	s := Start()
	defer s.Close()
	url := s.Create("q", Options{})
	status, answer := call(t, s, "SendMessageBatch", `{"QueueUrl":"`+url+`","Entries":[{"Id":"a","MessageBody":"x"},{"Id":"b","MessageBody":"\u0001"}]}`)
	failed, _ := answer["Failed"].([]any)
	passed, _ := answer["Successful"].([]any)
	if status != 200 || len(failed) != 1 || len(passed) != 1 || len(s.Messages("q")) != 1 {
		t.Fatalf("%d %v", status, answer)
	}
	if f := failed[0].(map[string]any); f["Id"] != "b" || f["Code"] != "InvalidMessageContents" || f["SenderFault"] != true {
		t.Errorf("%v", f)
	}
}

func TestAMessageReceivedTooOftenGoesToTheDeadLetterQueue(t *testing.T) {
	s := Start()
	defer s.Close()
	s.Create("dead", Options{})
	url := s.Create("q", Options{MaxReceives: 2, DeadLetter: "dead", Visibility: time.Minute})
	call(t, s, "SendMessage", `{"QueueUrl":"`+url+`","MessageBody":"x"}`)
	for i, want := range []int{1, 1, 0} {
		_, answer := call(t, s, "ReceiveMessage", `{"QueueUrl":"`+url+`"}`)
		if got, _ := answer["Messages"].([]any); len(got) != want {
			t.Errorf("receive %d: %v", i, answer)
		}
		s.Advance(61 * time.Second)
	}
	if len(s.Messages("q")) != 0 || len(s.Messages("dead")) != 1 {
		t.Errorf("%v, %v", s.Messages("q"), s.Messages("dead"))
	}
	_, answer := call(t, s, "GetQueueAttributes", `{"QueueUrl":"`+url+`","AttributeNames":["ApproximateNumberOfMessages","RedrivePolicy"]}`)
	a, _ := answer["Attributes"].(map[string]any)
	if a["ApproximateNumberOfMessages"] != "0" || !strings.Contains(fmt.Sprint(a["RedrivePolicy"]), `"maxReceiveCount":2`) {
		t.Errorf("%v", answer)
	}
}

func TestQueuesAreMadeOnce(t *testing.T) {
	s := Start()
	defer s.Close()
	_, made := call(t, s, "CreateQueue", `{"QueueName":"dead"}`)
	dead, _ := made["QueueUrl"].(string)
	const policy = `{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:123456789012:dead\",\"maxReceiveCount\":\"3\"}`
	for name, c := range map[string]struct {
		body, code string
	}{
		"again":                  {`{"QueueName":"dead"}`, ""},
		"with what it has":       {`{"QueueName":"dead","Attributes":{"VisibilityTimeout":"30"}}`, ""},
		"with something else":    {`{"QueueName":"dead","Attributes":{"VisibilityTimeout":"31"}}`, "QueueNameExists"},
		"with dead letters":      {`{"QueueName":"q","Attributes":{"RedrivePolicy":"` + policy + `"}}`, ""},
		"with none of its own":   {`{"QueueName":"dead","Attributes":{"RedrivePolicy":"` + policy + `"}}`, "QueueNameExists"},
		"a bad name":             {`{"QueueName":"a b"}`, "InvalidParameterValue"},
		"an unknown attribute":   {`{"QueueName":"r","Attributes":{"Colour":"red"}}`, "InvalidAttributeName"},
		"a bad timeout":          {`{"QueueName":"r","Attributes":{"VisibilityTimeout":"soon"}}`, "InvalidAttributeValue"},
		"dead letters elsewhere": {`{"QueueName":"r","Attributes":{"RedrivePolicy":"` + strings.Replace(policy, ":dead", ":other", 1) + `"}}`, "InvalidParameterValue"},
		"no policy":              {`{"QueueName":"r","Attributes":{"RedrivePolicy":"x"}}`, "InvalidParameterValue"},
	} {
		status, answer := call(t, s, "CreateQueue", c.body)
		if c.code == "" && (status != 200 || answer["QueueUrl"] == nil) || c.code != "" && answer["__type"] != "com.amazonaws.sqs#"+c.code {
			t.Errorf("%s: %d %v, want %q", name, status, answer, c.code)
		}
	}
	if status, _ := call(t, s, "DeleteQueue", `{"QueueUrl":"`+dead+`"}`); status != 200 {
		t.Errorf("deleting: %d", status)
	}
	if _, answer := call(t, s, "GetQueueUrl", `{"QueueName":"dead"}`); answer["__type"] != "com.amazonaws.sqs#QueueDoesNotExist" {
		t.Errorf("%v", answer)
	}
}
