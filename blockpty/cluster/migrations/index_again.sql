-- Every home indexes all of its conversations again.
UPDATE conversation SET lines = NULL;
UPDATE home SET generation = md5(random()::text || home);
