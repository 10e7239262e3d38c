-- +goose Up
-- +goose StatementBegin

-- What processes hold for a time.
CREATE TABLE toolctl_leases (
  name    text   COLLATE "C" PRIMARY KEY,
  holder  text   COLLATE "C" NOT NULL,
  value   text   NOT NULL,
  expires bigint NOT NULL
);

-- Makes a holder hold leases, in the order of their names, all but those that another holds, and returns
-- what time it is.
CREATE FUNCTION toolctl_hold(who text, names text[], contents text[], lasts bigint, most bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  now_us bigint;
BEGIN
  FOR i IN 1 .. coalesce(cardinality(names), 0) LOOP
    now_us := toolctl_now();
    INSERT INTO toolctl_leases AS l (name, holder, value, expires)
      SELECT names[i], who, contents[i], now_us + lasts
      WHERE EXISTS (SELECT 1 FROM toolctl_leases o WHERE o.name = names[i]) OR (SELECT count(*) FROM toolctl_leases) < most
      ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, value = excluded.value, expires = excluded.expires
      WHERE l.holder = excluded.holder OR l.expires <= now_us;
  END LOOP;
  RETURN toolctl_now();
END
$$;
-- +goose StatementEnd
