package onaws

import (
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"gateway/shared/pricing/running"
)

// counted counts the calls of AWS, to compute their cost; see running.
type counted struct{ aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c counted) Do(r *http.Request) (*http.Response, error) {
	sent := r.ContentLength
	answer, err := c.HTTPClient.Do(r)
	came := int64(0)
	if err == nil {
		came = answer.ContentLength
	}
	service, action := called(r)
	running.Process.Count(service, action, sent, came)
	return answer, err
}

// called names the service and the action of a call.
func called(r *http.Request) (service, action string) {
	target, action, named := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch {
	case !named && r.Header.Get("X-Amz-Content-Sha256") != "":
		return "S3", r.Method
	case strings.HasPrefix(target, "DynamoDB"):
		return "DynamoDB", action
	case target == "AmazonSQS":
		return "SQS", action
	case target == "TrentService":
		return "KMS", action
	}
	return "", ""
}
