// Google's Go clients against the local stack: prints one line for each thing that holds, ends with 1 at the first that
// does not. The stack's addresses come from PUBSUB_EMULATOR_HOST, FIRESTORE_EMULATOR_HOST and CLOUD_TASKS_EMULATOR_HOST,
// that of its control API from LOCAL_STACK_CONTROL.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	project = "polyglot-go"
	limit   = 180 * time.Second
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for _, part := range []func(context.Context) error{messages, documents, tasks, moves} {
		if err := part(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func holds(what string, condition bool, seen any) error {
	if !condition {
		return fmt.Errorf("%s: %v", what, seen)
	}
	fmt.Println("ok go:", what)
	return nil
}

func refused(what string, code codes.Code, err error) error {
	return holds(what, status.Code(err) == code, err)
}
