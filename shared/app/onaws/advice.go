package onaws

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/aws/smithy-go"
)

// advice maps error codes of AWS to remedies. %s is the call, such as "DynamoDB GetItem".
var advice = []struct {
	codes []string
	text  string
}{
	{[]string{"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"},
		"the AWS credentials have expired: sign in again (aws sso login), or set new ones with their AWS_SESSION_TOKEN"},
	{[]string{"UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSignatureException", "IncompleteSignature", "MissingAuthenticationToken", "MissingAuthenticationTokenException"},
		"AWS does not know these credentials: check AWS_PROFILE, or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, which belong together"},
	{[]string{"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"},
		"the clock of this machine is wrong: set it"},
	{[]string{"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError", "AuthorizationErrorException", "NotAuthorized"},
		"the credentials may not do %s: of a function, deploy the stacks again, which puts its role right; of a person, allow it to who runs this"},
	{[]string{"OptInRequired", "SubscriptionRequiredException"},
		"the account cannot use %s here: enable the region or the service in the account"},
	{[]string{"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"},
		"the queue of %s does not exist: check GATEWAY_USAGE_QUEUE_URL, GATEWAY_AUDIT_QUEUE_URL, GATEWAY_BATCH_QUEUE_URL, GATEWAY_EXPORT_QUEUE_URL and AWS_REGION, or deploy the stacks"},
	{[]string{"NoSuchBucket"},
		"the bucket of %s does not exist: check GATEWAY_BUCKET and AWS_REGION, or deploy the stacks"},
	{[]string{"NotFoundException"}, // of KMS
		"what %s names does not exist: check GATEWAY_KMS_KEY_ID and AWS_REGION, or deploy the stacks"},
	{[]string{"ResourceNotFoundException"},
		"what %s names does not exist: check GATEWAY_TABLE_PREFIX and AWS_REGION, or deploy the stacks"},
	{[]string{"DisabledException", "KMSInvalidStateException"},
		"the key of %s is disabled or about to be deleted: enable it, or cancel its deletion; without it no credential can be read"},
	{[]string{"BucketAlreadyExists"},
		"the name of the bucket is somebody else's: set GATEWAY_BUCKET to another"},
	{[]string{"LimitExceededException"},
		"the account has as many as it may have for %s: delete what is not used, or ask for more in Service Quotas"},
}

// Advise puts advice in front of an error of AWS that it knows; other errors stay as they
// are.
func Advise(err error) error {
	if err == nil {
		return nil
	}
	if text := advised(err); text != "" {
		return fmt.Errorf("%s (%w)", text, err)
	}
	return err
}

func advised(err error) string {
	call := "this call"
	var op *smithy.OperationError
	if errors.As(err, &op) {
		call = op.Service() + " " + op.Operation()
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		for _, a := range advice {
			for _, code := range a.codes {
				if api.ErrorCode() == code {
					return strings.ReplaceAll(a.text, "%s", call)
				}
			}
		}
	}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound && strings.HasSuffix(strings.TrimSuffix(dns.Name, "."), ".amazonaws.com"):
		return fmt.Sprintf("there is no host %s: is AWS_REGION=%s a region of AWS?", dns.Name, os.Getenv("AWS_REGION"))
	case strings.Contains(err.Error(), "failed to refresh cached credentials"), strings.Contains(err.Error(), "no EC2 IMDS role found"):
		return "there are no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or sign in (aws sso login)"
	case strings.Contains(err.Error(), "failed to get shared config profile"):
		return "the profile in AWS_PROFILE does not exist: aws configure list-profiles names those that do"
	}
	return ""
}
