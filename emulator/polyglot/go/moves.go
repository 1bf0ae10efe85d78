package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"time"

	cloudtasks "cloud.google.com/go/cloudtasks/apiv2"
	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The subscriber while the stack's clock is moved: what it answers is neither delivered again nor dead-lettered.
// Last of all parts, because the clock never goes back.
func moves(ctx context.Context) error {
	client, err := pubsub.NewClient(ctx, project)
	if err != nil {
		return err
	}
	defer client.Close()
	atOnce := func(message *pubsub.Message) { message.Ack() }

	before := func(s *subscriber) error { return s.publish(ctx, 600) }
	seen, err := moved(ctx, client, "moved-before", "45d", 600, atOnce, before)
	if err == nil {
		err = holds("600 messages published just before a move of 45 days arrive once", seen.is(600, 1, []int{1}), seen)
	}
	if err != nil {
		return err
	}

	var stop func()
	during := func(s *subscriber) (err error) {
		stop, err = publishLater(ctx, s, 20)
		return err
	}
	seen, err = moved(ctx, client, "moved-during", "45d", 20, atOnce, during)
	if stop != nil {
		stop()
	}
	if err == nil {
		err = holds("messages published during a move arrive once", seen.is(20, 1, []int{1}), seen)
	}
	if err != nil {
		return err
	}

	thirdTime := func(message *pubsub.Message) {
		if *message.DeliveryAttempt == 3 {
			message.Ack()
		} else {
			message.Nack()
		}
	}
	nacked := func(s *subscriber) error { return s.publish(ctx, 20) }
	seen, err = moved(ctx, client, "moved-nacks", "1d", 60, thirdTime, nacked)
	if err == nil {
		err = holds("a nack on its way is an attempt, and its backoff is in the same move", seen.is(20, 3, []int{1, 2, 3}), seen)
	}
	if err != nil {
		return err
	}

	slow := func(message *pubsub.Message) {
		time.Sleep(5 * time.Second)
		message.Ack()
	}
	held := func(s *subscriber) error {
		if err := s.publish(ctx, 5); err != nil {
			return err
		}
		return until(ctx, func() (bool, error) { return s.count() == 5, nil })
	}
	seen, err = moved(ctx, client, "moved-slow", "45d", 5, slow, held)
	if err != nil {
		return err
	}
	bounded := seen.messages == 5 && seen.most <= 2 && slices.Equal(seen.attempts, []int{1}) && seen.dead == 0
	return holds("a slow subscriber gets a message at most once more for a move, and no attempt is counted", bounded, seen)
}

type subscriber struct {
	topic    *pubsub.Publisher
	mutex    sync.Mutex
	arrivals map[string]int
	attempts map[int]bool
}

func (s *subscriber) publish(ctx context.Context, count int) error {
	var results []*pubsub.PublishResult
	for range count {
		results = append(results, s.topic.Publish(ctx, &pubsub.Message{Data: []byte("x")}))
	}
	for _, result := range results {
		if _, err := result.Get(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *subscriber) count() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	sum := 0
	for _, count := range s.arrivals {
		sum += count
	}
	return sum
}

type seen struct {
	// Different messages, the most arrivals of one, the attempts that were named, and the dead letters.
	messages, most int
	attempts       []int
	dead           int
}

func (s seen) is(messages, most int, attempts []int) bool {
	return s.messages == messages && s.most == most && slices.Equal(s.attempts, attempts) && s.dead == 0
}

// moved subscribes with a dead-letter policy of five attempts, prepares, moves the clock, and says what has arrived when
// there were count arrivals and all is settled.
func moved(ctx context.Context, client *pubsub.Client, name, by string, count int, settle func(*pubsub.Message), prepare func(*subscriber) error) (seen, error) {
	topic := func(name string) string { return "projects/" + project + "/topics/" + name }
	path := func(name string) string { return "projects/" + project + "/subscriptions/" + name }
	dead := name + "-dead"
	for _, each := range []string{name, dead} {
		if _, err := client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: topic(each)}); err != nil {
			return seen{}, err
		}
	}
	for _, each := range []*pubsubpb.Subscription{
		{Name: path(dead), Topic: topic(dead)},
		{
			Name:             path(name),
			Topic:            topic(name),
			DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: topic(dead), MaxDeliveryAttempts: 5},
			RetryPolicy: &pubsubpb.RetryPolicy{
				MinimumBackoff: durationpb.New(10 * time.Second),
				MaximumBackoff: durationpb.New(10 * time.Minute),
			},
		},
	} {
		each.ExpirationPolicy = &pubsubpb.ExpirationPolicy{}
		if _, err := client.SubscriptionAdminClient.CreateSubscription(ctx, each); err != nil {
			return seen{}, err
		}
	}
	s := &subscriber{topic: client.Publisher(topic(name)), arrivals: map[string]int{}, attempts: map[int]bool{}}
	receiving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- client.Subscriber(path(name)).Receive(receiving, func(_ context.Context, message *pubsub.Message) {
			s.mutex.Lock()
			s.arrivals[message.ID]++
			s.attempts[*message.DeliveryAttempt] = true
			s.mutex.Unlock()
			settle(message)
		})
	}()
	err := prepare(s)
	if err == nil {
		err = control(ctx, "POST", "/clock/advance", map[string]string{"by": by}, nil)
	}
	if err == nil {
		err = until(ctx, func() (bool, error) {
			var state struct{ Pubsub struct{ Outstanding int } }
			err := control(ctx, "GET", "/state", nil, &state)
			return s.count() >= count && state.Pubsub.Outstanding == 0, err
		})
	}
	stop()
	if err = errors.Join(err, <-ended); err != nil {
		return seen{}, err
	}
	pulled, err := client.SubscriptionAdminClient.Pull(ctx, &pubsubpb.PullRequest{
		Subscription: path(dead), MaxMessages: 1000, ReturnImmediately: true,
	})
	if err != nil {
		return seen{}, err
	}
	return seen{
		messages: len(s.arrivals),
		most:     slices.Max(slices.Collect(maps.Values(s.arrivals))),
		attempts: slices.Sorted(maps.Keys(s.attempts)),
		dead:     len(pulled.ReceivedMessages),
	}, nil
}

// publishLater creates tasks seven minutes apart, each of which publishes a message.
func publishLater(ctx context.Context, s *subscriber, count int) (func(), error) {
	target := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		if err := s.publish(ctx, 1); err != nil {
			response.WriteHeader(http.StatusInternalServerError)
		}
	}))
	connection, err := grpc.NewClient(os.Getenv("CLOUD_TASKS_EMULATOR_HOST"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return target.Close, err
	}
	client, err := cloudtasks.NewClient(ctx, option.WithGRPCConn(connection))
	if err != nil {
		return target.Close, err
	}
	defer client.Close()
	parent := "projects/" + project + "/locations/us-central1"
	queue := parent + "/queues/moved"
	if _, err = client.CreateQueue(ctx, &cloudtaskspb.CreateQueueRequest{Parent: parent, Queue: &cloudtaskspb.Queue{Name: queue}}); err != nil {
		return target.Close, err
	}
	var now struct{ NowMs float64 }
	if err = control(ctx, "GET", "/clock", nil, &now); err != nil {
		return target.Close, err
	}
	for n := range count {
		at := time.UnixMilli(int64(now.NowMs)).Add(24*time.Hour + time.Duration(n)*7*time.Minute)
		_, err = client.CreateTask(ctx, &cloudtaskspb.CreateTaskRequest{Parent: queue, Task: &cloudtaskspb.Task{
			ScheduleTime: timestamppb.New(at),
			MessageType:  &cloudtaskspb.Task_HttpRequest{HttpRequest: &cloudtaskspb.HttpRequest{Url: target.URL}},
		}})
		if err != nil {
			return target.Close, err
		}
	}
	return target.Close, nil
}

func control(ctx context.Context, method, path string, body, answer any) error {
	sent, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, os.Getenv("LOCAL_STACK_CONTROL")+path, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

func until(ctx context.Context, condition func() (bool, error)) error {
	for {
		if holds, err := condition(); err != nil || holds {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
