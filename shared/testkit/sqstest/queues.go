package sqstest

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// createQueue makes a queue, as SQS does: it is no error if the queue exists and has the
// given attributes.
func (s *Server) createQueue(in *struct {
	QueueName  string
	Attributes map[string]string
	Tags       map[string]string `json:"tags"`
}) (any, *failure) {
	if !queueName.MatchString(in.QueueName) {
		return nil, fail("InvalidParameterValue", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	opt := Options{Visibility: 30 * time.Second}
	for name, v := range in.Attributes {
		switch name {
		case "VisibilityTimeout":
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 || n > 43200 {
				return nil, fail("InvalidAttributeValue", "Invalid value for the parameter VisibilityTimeout.")
			}
			opt.Visibility = time.Duration(n) * time.Second
		case "RedrivePolicy":
			if f := redrive(s, v, &opt); f != nil {
				return nil, f
			}
		case "MessageRetentionPeriod", "MaximumMessageSize", "ReceiveMessageWaitTimeSeconds", "SqsManagedSseEnabled":
		default:
			return nil, fail("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	_, visible := in.Attributes["VisibilityTimeout"]
	_, dies := in.Attributes["RedrivePolicy"]
	q := s.queues[in.QueueName]
	if q != nil && (visible && q.opt.Visibility != opt.Visibility || dies && (q.opt.DeadLetter != opt.DeadLetter || q.opt.MaxReceives != opt.MaxReceives)) {
		return nil, fail("QueueNameExists", "A queue already exists with the same name and a different value for an attribute.")
	}
	if q == nil {
		s.queues[in.QueueName] = &store{name: in.QueueName, opt: opt}
	}
	return map[string]string{"QueueUrl": s.http.URL + "/" + account + "/" + in.QueueName}, nil
}

func redrive(s *Server, policy string, to *Options) *failure {
	var p struct {
		Target string      `json:"deadLetterTargetArn"`
		Most   json.Number `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(policy), &p) != nil {
		return fail("InvalidParameterValue", "RedrivePolicy is no JSON.")
	}
	n, err := strconv.Atoi(p.Most.String())
	name := p.Target[strings.LastIndexByte(p.Target, ':')+1:]
	if err != nil || n < 1 || n > 1000 || !strings.HasPrefix(p.Target, "arn:aws:sqs:") || s.queues[name] == nil {
		return fail("InvalidParameterValue", "Value %s for parameter RedrivePolicy is invalid.", policy)
	}
	to.MaxReceives, to.DeadLetter = n, name
	return nil
}

func (s *Server) deleteQueue(in *struct{ QueueUrl string }) (any, *failure) {
	q, f := find(s, in.QueueUrl)
	if f != nil {
		return nil, f
	}
	delete(s.queues, q.name)
	return map[string]string{}, nil
}
