// Package onaws builds the core of an installation on AWS from environment variables:
// DynamoDB, SQS, S3 and KMS. Opening it makes no call; clients read what they need when
// they are first used. AWS_ENDPOINT_URL sends calls elsewhere than to AWS;
// AWS_ENDPOINT_URL_SQS, for example, does so for one service.
package onaws
