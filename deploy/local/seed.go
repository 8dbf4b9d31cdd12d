package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

const tokenLife = "720h"

// tokenNames lists the tokens that the stack makes, each for a client of that name. The second operator is for acts that need
// two persons.
func tokenNames() []string {
	return []string{"customer", "customer2", "finance", "operator", "operator2"}
}

func scopes(name string) string {
	switch name {
	case "finance":
		return "bookings:read,finance"
	case "operator", "operator2":
		return "bookings:read,operator"
	default:
		return "bookings:write,bookings:read"
	}
}

// seedResources lists what can be booked: the first has one place, another has several.
func seedResources() []resource {
	return []resource{
		{Name: "Court 1", TimeZone: "Europe/Berlin", Places: 1, UnitMinutes: 60, Price: 2500, Currency: "eur"},
		{Name: "Climbing hall", TimeZone: "Europe/Berlin", Places: 8, UnitMinutes: 60, Price: 1200, Currency: "eur"},
		{Name: "Meeting room", TimeZone: "America/New_York", Places: 1, UnitMinutes: 30, Price: 4000, Currency: "usd"},
	}
}

// seed migrates the database and makes tokens and resources in it, through the commands that an operator would use.
func seed(ctx context.Context, api string, env environment, d *description) error {
	if _, err := command(ctx, env, api, "migrate"); err != nil {
		return err
	}
	d.Tokens = map[string]string{}
	for _, name := range tokenNames() {
		var made struct {
			Token string `json:"token"`
		}
		err := commandJSON(ctx, env, &made, api, "token", "create",
			"--client", name, "--scope", scopes(name), "--expires-in", tokenLife, "--json")
		if err != nil {
			return err
		}
		d.Tokens[name] = made.Token
	}
	for _, wanted := range seedResources() {
		made := wanted
		err := commandJSON(ctx, env, &made, api, "resource", "create", "--name", wanted.Name, "--time-zone", wanted.TimeZone,
			"--places", strconv.Itoa(wanted.Places), "--unit-minutes", strconv.Itoa(wanted.UnitMinutes),
			"--price", strconv.FormatInt(wanted.Price, 10), "--currency", wanted.Currency, "--json")
		if err != nil {
			return err
		}
		d.Resources = append(d.Resources, made)
	}
	return nil
}

// commandJSON runs a command and reads the JSON it prints.
func commandJSON(ctx context.Context, env environment, into any, path string, args ...string) error {
	output, err := command(ctx, env, path, args...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(output, into); err != nil {
		return fmt.Errorf("%s %s printed no JSON: %w", path, strings.Join(args, " "), err)
	}
	return nil
}

// command runs a command to its end and returns what it printed. An error quotes what it complained about.
func command(ctx context.Context, env environment, path string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // a program of the stack
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("%s %s: %w: %s", path, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}
